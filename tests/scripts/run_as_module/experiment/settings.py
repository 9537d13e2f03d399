LR = 0.1
TEST_BATCH = 50
TRAIN_BATCH = 0x0_8  # kept in hexadecimal
